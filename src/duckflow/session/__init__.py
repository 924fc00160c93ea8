"""One session, one actor: the host carries out every command, and every interface is its client."""
