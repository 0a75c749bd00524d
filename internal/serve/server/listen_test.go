package server

import (
	"errors"
	"net"
	"strings"
	"testing"

	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/run"
)

// Where somebody listens already, it is said what to give instead.
func TestListenWhereAnotherDoes(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	at := func(address string) error {
		s := &Server{Options: Options{Listen: address, Socket: None, Env: func(string) string { return "" }}}
		return errors.Join(s.listen(t.Context()), s.close())
	}
	if err := at("127.0.0.1:0"); err != nil { // control
		t.Fatal(err)
	}
	err = at(l.Addr().String())
	var se *compose.Error
	if !errors.As(err, &se) || se.Status != run.StatusUnavailable || !strings.Contains(err.Error(),
		"give another address as --listen") {
		t.Errorf("%v", err)
	}
}

// Behind a proxy loopback proves nothing, and nobody is told that it does.
func TestWhoMayAskBehindAProxy(t *testing.T) {
	s := &Server{}
	s.wired.proofs = 2
	if who := s.whoMayAsk(); !strings.Contains(who, "of this machine, and the holders of 2 tokens") {
		t.Errorf("control: %s", who)
	}
	s.Config.Serve.BehindProxy = true
	if who := s.whoMayAsk(); !strings.Contains(who, "of this machine by the socket, and the holders of 2 tokens") {
		t.Errorf("behind a proxy: %s", who)
	}
}
