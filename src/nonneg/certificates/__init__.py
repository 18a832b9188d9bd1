"""Certificates: statements about a fit that a person can read and a program can test."""
