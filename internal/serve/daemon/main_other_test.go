//go:build !linux

package daemon

func clientMain(string) int { return 1 }
