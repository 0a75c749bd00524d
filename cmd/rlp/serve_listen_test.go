package main

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"runloop.dev/rlp/launcher"
)

// Where somebody listens already, it is said what to give instead.
func TestListenWhereAnotherDoes(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	at := func(address string) error {
		s := &server{
			app:   &app{environment: environment{env: []string{"HOME=/nowhere"}, stdout: io.Discard}},
			flags: serveFlags{listen: address, socket: none},
		}
		return errors.Join(s.listen(t.Context()), s.close())
	}
	if err := at("127.0.0.1:0"); err != nil { // control
		t.Fatal(err)
	}
	err = at(l.Addr().String())
	var se *statusError
	if !errors.As(err, &se) || se.Status != launcher.StatusUnavailable || !strings.Contains(err.Error(),
		"give another address as --listen") {
		t.Errorf("%v", err)
	}
}

// Behind a proxy loopback proves nothing, and nobody is told that it does.
func TestWhoMayAskBehindAProxy(t *testing.T) {
	s := &server{}
	s.wired.proofs = 2
	if who := s.whoMayAsk(); !strings.Contains(who, "of this machine, and the holders of 2 tokens") {
		t.Errorf("control: %s", who)
	}
	s.config.Serve.BehindProxy = true
	if who := s.whoMayAsk(); !strings.Contains(who, "of this machine by the socket, and the holders of 2 tokens") {
		t.Errorf("behind a proxy: %s", who)
	}
}

// Connections have at most half of the descriptors, and leave some for all else;
// the socket has places that nobody at the address takes.
func TestPlacesAreWhatDescriptorsLeave(t *testing.T) {
	for limit, want := range map[uint64][2]int{
		0: {2, 6}, 64: {2, 6}, 100: {9, 27}, 256: {32, 96}, 1024: {128, 384}, 4096: {512, 1536}, 1 << 20: {4096, 4096},
		1<<64 - 1: {4096, 4096},
	} {
		socket, address := places(limit)
		if socket != want[0] || address != want[1] {
			t.Errorf("of %d descriptors: %d and %d, want %v", limit, socket, address, want)
		}
	}
	if descriptors() == 0 {
		t.Error("the limit of this process cannot be read")
	}
}
