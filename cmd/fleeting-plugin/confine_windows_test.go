package main

import "os"

func confine(string) error { return nil }

func peakMemory(*os.ProcessState) int64 { return 0 }
