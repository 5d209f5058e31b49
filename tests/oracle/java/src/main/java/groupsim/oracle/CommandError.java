package groupsim.oracle;

/** A command that cannot be carried out as written; its message goes into the result's "error". */
final class CommandError extends RuntimeException {
    CommandError(String message) {
        super(message);
    }
}
