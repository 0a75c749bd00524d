package daemon

import (
	"slices"
	"strings"
	"testing"
)

func TestRequestsAreBounded(t *testing.T) {
	for name, r := range map[string]Request{
		"long":  {Args: []string{strings.Repeat("x", MaxRequest)}},
		"words": {Env: make([]string, MaxWords+1)},
	} {
		if _, err := r.encode(); err == nil {
			t.Errorf("%s: it fits", name)
		}
	}
}

// Whatever a client sends is a request that says the same when it is sent again,
// or none.
func FuzzDecode(f *testing.F) {
	for _, r := range []Request{
		{Kind: Launch},
		{Kind: Launch, Args: []string{"launch", ""}, Env: []string{"A=b"}},
		{Kind: Stop},
	} {
		packet, err := r.encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(packet)
		f.Add(packet[:len(packet)-1])
	}
	f.Fuzz(func(t *testing.T, packet []byte) {
		r, err := decode(packet)
		if err != nil {
			return
		}
		again, err := r.encode()
		if err != nil || !slices.Equal(again, packet) {
			t.Fatalf("%q, %v", again, err)
		}
	})
}
