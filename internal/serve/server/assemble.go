package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/serve/access"
	"runloop.dev/rlp/internal/serve/api"
	"runloop.dev/rlp/internal/serve/console"
	"runloop.dev/rlp/internal/serve/host"
	"runloop.dev/rlp/internal/serve/mcpserver"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/internal/serve/telemetry"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/run"
	"runloop.dev/rlp/secrets"
)

// wiring is the rooms that a service is made of, put together.
type wiring struct {
	service *service.Service
	access  *access.Access
	mcp     *mcpserver.Server
	watch   *telemetry.Telemetry
	tokens  *access.Store
	proofs  int // what may be shown by who is not known by the connection
	token   string
	port    uint16
	clients *x509.CertPool // who signs certificates of clients
	handler http.Handler
}

// tokensDir is the folder of the records of tokens.
func tokensDir(h home.Home) string { return filepath.Join(h.Dir(), "tokens") }

// keys finds what callers can prove themselves by.
func (s *Server) keys(ctx context.Context) error {
	w := &s.wired
	w.tokens = access.OpenStore(tokensDir(s.Home), s.Now)
	good, err := w.tokens.Good(s.Config.Serve.ClientCA != "")
	if err != nil {
		return compose.InputErr(err)
	}
	w.proofs = good
	if text := s.Config.Serve.TokenSecret; text != "" {
		if w.token, err = s.secret(ctx, text); err != nil {
			return fmt.Errorf("serve.token_secret: %w", err)
		}
		w.proofs++
	}
	return nil
}

// secret is the value of a secret of the default tenant.
func (s *Server) secret(ctx context.Context, text string) (string, error) {
	id, err := secrets.ParseID(text)
	if err != nil {
		return "", compose.InputErr(err)
	}
	p, err := s.Runner.SecretProvider(s.Home, s.Config)
	if err != nil {
		return "", err
	}
	value, err := p.Get(ctx, id)
	if err != nil {
		return "", compose.SecretsErr(err)
	}
	return string(value), nil
}

// assemble puts the rooms together.
func (s *Server) assemble() (err error) {
	w := &s.wired
	w.watch, err = telemetry.New(telemetry.Options{
		Collector: s.Config.Serve.OTLP, Env: s.Env, Version: s.Version, Now: s.Now, Log: s.Log,
		Tenant: home.DefaultTenant,
		Load:   func() service.Load { return w.service.Load() }, LogSize: s.host.LogSize, LogUnsealed: s.host.LogUnsealed,
		Backlog: s.host.Backlog,
	})
	if err != nil {
		return compose.InputErr(err)
	}
	w.service = service.New(service.Options{
		Kept: s.reports, Unread: s.unread,
		Host: s.host, Workers: s.workers(), Queue: int(s.Config.Serve.Queue), Grace: s.Config.Serve.GraceTime(),
		TurnIdle: s.Config.Serve.TurnIdleTime(), Now: s.Now, Log: s.Log, Watch: w.watch,
	})
	w.access, err = access.New(access.Options{
		Tokens: w.tokens, UID: os.Getuid(), Tenant: home.DefaultTenant, OperatorToken: w.token, Layers: s.host.TokenLayers,
		ClientCAs: w.clients,
		Hosts:     s.Config.Serve.Hosts, Port: w.port, BehindProxy: s.Config.Serve.BehindProxy, Now: s.Now, Log: s.Log,
	})
	if err != nil {
		return compose.InputErr(err)
	}
	questions := host.Questions{Host: s.host}
	w.mcp = mcpserver.New(mcpserver.Options{
		Service: w.service, Host: questions, Version: s.Version, Now: s.Now,
		Log: s.Log, Still: func(c *service.Caller) error { return c.Over(s.Now()) },
	})
	w.handler = w.watch.Requests(api.Handler(api.Options{
		Service: w.service, Host: questions, Access: w.access, MCP: w.mcp, Metrics: w.watch.Metrics(), Ready: s.host.Ready,
		Waiting: s.Runner.Kept.Stores.Backlog, Log: s.Log, Now: s.Now,
		Console: console.New(console.Options{Runs: w.service, Host: questions, Now: s.Now, Log: s.Log}),
	}))
	return nil
}

// whoMayAsk says it in words.
func (s *Server) whoMayAsk() string {
	who := "user " + fmt.Sprint(os.Getuid()) + " of this machine"
	if s.Config.Serve.BehindProxy { // what comes over TCP is the proxy's
		who += " by the socket"
	}
	switch n := s.wired.proofs; {
	case n == 1:
		who += ", and the holder of one token"
	case n > 1:
		who += fmt.Sprintf(", and the holders of %d tokens", n)
	}
	return who
}

// tls is the configuration of the TCP listener; nil: it speaks plainly.
func (s *Server) tls() (*tls.Config, error) {
	v := s.Config.Serve
	if v.TLSCert == "" && v.TLSKey == "" {
		if v.ClientCA != "" {
			return nil, compose.InputErr(errors.New("serve.client_ca takes effect with serve.tls_cert and serve.tls_key alone; set " +
				"them, or take it out"))
		}
		return nil, nil
	}
	cfg, err := access.TLSConfig(v.TLSCert, v.TLSKey, v.ClientCA, s.Log)
	if err != nil {
		return nil, compose.InputErr(err)
	}
	s.wired.clients = cfg.ClientCAs
	return cfg, nil
}

// mayListen refuses an address where strangers could ask.
func (s *Server) mayListen(address string) error {
	port, err := access.Listener{
		Addr: address, TLS: s.Config.Serve.TLSCert != "", BehindProxy: s.Config.Serve.BehindProxy,
		Proofs: s.wired.proofs,
	}.Check()
	if err != nil {
		return &compose.Error{Status: run.StatusPolicy, Err: err}
	}
	s.wired.port = port
	return nil
}

// connection makes what is known of whoever connects known to their requests.
func (s *Server) connection(ctx context.Context, c net.Conn) context.Context {
	return s.wired.access.ConnContext(ctx, c)
}
