"""What survives: one SQLite file with the log, the outbox and all that is resident, and segments beside it."""
