"""What every route shares: keys, error bodies, request ids and limits."""
