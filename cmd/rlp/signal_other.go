//go:build !unix

package main

func handleWriteSignals() {}
