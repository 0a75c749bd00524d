//go:build !slim

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"

	"runloop.dev/rlp/launcher"
)

// wiring is the rooms that a service is made of, put together.
type wiring struct {
	handler    http.Handler
	connection func(context.Context, net.Conn) context.Context
	drain      func(context.Context) error
	whoMayAsk  string
}

// assemble puts the rooms together.
func (s *server) assemble(context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, `{"status":"ok"}`) })
	s.wired = wiring{handler: mux, whoMayAsk: "nobody yet"}
	return nil
}

// tls is the configuration of the TCP listener; nil: it speaks plainly.
func (s *server) tls() (*tls.Config, error) { return nil, nil }

// mayListen refuses an address where strangers could ask.
func (s *server) mayListen(address string) error {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	if err == nil && (host == "localhost" || ip != nil && ip.IsLoopback()) {
		return nil
	}
	return &statusError{launcher.StatusPolicy, fmt.Errorf("%s is beyond this machine", address)}
}
