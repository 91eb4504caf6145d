"""Values to text. Nothing here reads, writes, asks for the time or logs."""
