"""What several tests share: trees, clients, servers, and scripted tools."""
