"""The steps that bring a database from any earlier form of the tables to the present one."""
