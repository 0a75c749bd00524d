//go:build linux && !amd64 && !arm64

package sandbox

func learntCallsOfArchitecture(map[uint32]learntCall, func(how byte) learntCall) {}
