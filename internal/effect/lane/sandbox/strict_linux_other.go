//go:build linux && !amd64 && !arm64

package sandbox

func ofArchitecture() []uint32 { return nil }

func modeCallsOfArchitecture() []modeCall { return nil }
