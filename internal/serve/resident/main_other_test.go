//go:build !linux

package resident

func clientMain(string) int { return 1 }
