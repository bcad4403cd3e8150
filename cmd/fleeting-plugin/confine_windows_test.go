package main

func confine(string) error { return nil }
