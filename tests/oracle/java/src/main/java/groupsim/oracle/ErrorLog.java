package groupsim.oracle;

import java.util.ArrayList;
import java.util.List;

import com.fasterxml.jackson.databind.node.ObjectNode;

import org.slf4j.helpers.FormattingTuple;
import org.slf4j.helpers.MarkerIgnoringBase;
import org.slf4j.helpers.MessageFormatter;

/**
 * A logger that keeps what Kafka logs as an error and drops the rest. Some failures inside the
 * event loop (a timer's handler that throws, for one) reach nobody but the log.
 */
public final class ErrorLog extends MarkerIgnoringBase {
    private static final long serialVersionUID = 1;

    private static List<ObjectNode> errors = new ArrayList<>();

    public ErrorLog(String name) {
        this.name = name;
    }

    /** Errors logged since the last call. */
    static List<ObjectNode> takeErrors() {
        List<ObjectNode> taken = errors;
        errors = new ArrayList<>();
        return taken;
    }

    private void keep(FormattingTuple tuple) {
        ObjectNode node = Json.object();
        node.put("logger", name.substring(name.lastIndexOf('.') + 1));
        node.put("message", tuple.getMessage());
        Throwable thrown = tuple.getThrowable();
        node.put("exception", thrown == null ? null : thrown.toString());
        errors.add(node);
    }

    @Override
    public boolean isErrorEnabled() {
        return true;
    }

    @Override
    public void error(String message) {
        keep(new FormattingTuple(message));
    }

    @Override
    public void error(String format, Object argument) {
        keep(MessageFormatter.format(format, argument));
    }

    @Override
    public void error(String format, Object first, Object second) {
        keep(MessageFormatter.format(format, first, second));
    }

    @Override
    public void error(String format, Object... arguments) {
        keep(MessageFormatter.arrayFormat(format, arguments));
    }

    @Override
    public void error(String message, Throwable thrown) {
        keep(new FormattingTuple(message, null, thrown));
    }

    @Override
    public boolean isTraceEnabled() {
        return false;
    }

    @Override
    public void trace(String message) {
    }

    @Override
    public void trace(String format, Object argument) {
    }

    @Override
    public void trace(String format, Object first, Object second) {
    }

    @Override
    public void trace(String format, Object... arguments) {
    }

    @Override
    public void trace(String message, Throwable thrown) {
    }

    @Override
    public boolean isDebugEnabled() {
        return false;
    }

    @Override
    public void debug(String message) {
    }

    @Override
    public void debug(String format, Object argument) {
    }

    @Override
    public void debug(String format, Object first, Object second) {
    }

    @Override
    public void debug(String format, Object... arguments) {
    }

    @Override
    public void debug(String message, Throwable thrown) {
    }

    @Override
    public boolean isInfoEnabled() {
        return false;
    }

    @Override
    public void info(String message) {
    }

    @Override
    public void info(String format, Object argument) {
    }

    @Override
    public void info(String format, Object first, Object second) {
    }

    @Override
    public void info(String format, Object... arguments) {
    }

    @Override
    public void info(String message, Throwable thrown) {
    }

    @Override
    public boolean isWarnEnabled() {
        return false;
    }

    @Override
    public void warn(String message) {
    }

    @Override
    public void warn(String format, Object argument) {
    }

    @Override
    public void warn(String format, Object... arguments) {
    }

    @Override
    public void warn(String format, Object first, Object second) {
    }

    @Override
    public void warn(String message, Throwable thrown) {
    }
}
