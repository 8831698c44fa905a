"""The service on more than one process or machine: Ray Serve and Modal. Importing it imports neither."""
