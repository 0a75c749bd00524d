//go:build !linux

package lane

// An OwnNetwork is what a program gets that is to reach something: nothing, here.
type OwnNetwork struct{ Ports []uint16 }
