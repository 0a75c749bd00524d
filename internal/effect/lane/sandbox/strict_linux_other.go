//go:build linux && !amd64 && !arm64

package sandbox

// ofArchitecture is empty where there is no filter.
func ofArchitecture() []uint32 { return nil }

// modeCallsOfArchitecture are those that it alone has: none.
func modeCallsOfArchitecture() []modeCall { return nil }
