"""The project's tests, by purpose; see CONTRIBUTING.md."""
