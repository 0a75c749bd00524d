package api

import "testing"

// Connections have at most half of the descriptors, and leave some for all else;
// the socket has places that nobody at the address takes.
func TestPlacesAreWhatDescriptorsLeave(t *testing.T) {
	for limit, want := range map[uint64][2]int{
		0: {2, 6}, 64: {2, 6}, 100: {9, 27}, 256: {32, 96}, 1024: {128, 384}, 4096: {512, 1536}, 1 << 20: {4096, 4096},
		1<<64 - 1: {4096, 4096},
	} {
		socket, address := Places(limit)
		if socket != want[0] || address != want[1] {
			t.Errorf("of %d descriptors: %d and %d, want %v", limit, socket, address, want)
		}
	}
	if Descriptors() == 0 {
		t.Error("the limit of this process cannot be read")
	}
}
