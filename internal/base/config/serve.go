package config

import (
	"net/netip"
	"strings"
	"time"

	"runloop.dev/rlp/internal/base/tomlfile"
)

// Serve is [serve]: the service.
type Serve struct {
	Listen string `path:"-"` // host:port
	// id of the secret that holds a bearer token of the operator's; "" is none
	TokenSecret string `path:"-"`
	// names beside the address itself by which it may be called: "agents.example" or "agents.example:8443"
	Hosts   []string `path:"-"`
	TLSCert string   `path:"serve.tls_cert"` // path of a PEM file; with TLSKey the TCP listener speaks TLS
	TLSKey  string   `path:"serve.tls_key,secret"`
	// a proxy in front speaks TLS: connections over TCP prove nothing, and plain HTTP may be listened on beyond loopback
	BehindProxy bool
	ClientCA    string `path:"serve.client_ca"` // path of a PEM file: a client certificate of it stands for a caller
	Workers     int64  // runs at a time; 0: 16 a core
	// bytes that the runs may have together; 0: three quarters of what the control group or the machine has
	Memory   int64
	Queue    int64  // runs that wait for a worker
	Grace    string `path:"-"` // how long a run may go on when the service ends
	TurnIdle string `path:"-"` // how long a run waits for its next input
	OTLP     string `path:"-"` // where traces and metrics are sent, a URL; "" is nowhere
}

func defaultServe() Serve {
	return Serve{Listen: "127.0.0.1:8770", Queue: 2048, Grace: "10s", TurnIdle: "10m"}
}

// GraceTime is how long runs may go on when the service ends.
func (s Serve) GraceTime() time.Duration {
	d, err := time.ParseDuration(s.Grace)
	if err != nil {
		return 0
	}
	return d
}

// TurnIdleTime is how long a run waits for its next input.
func (s Serve) TurnIdleTime() time.Duration {
	d, err := time.ParseDuration(s.TurnIdle)
	if err != nil {
		return 0
	}
	return d
}

func serveSettings() []setting {
	return []setting{
		text("serve.listen", func(c *Config) *string { return &c.Serve.Listen }, hostPort),
		text("serve.token_secret", func(c *Config) *string { return &c.Serve.TokenSecret }, secretID),
		list("serve.hosts", func(c *Config) *[]string { return &c.Serve.Hosts }, hostName),
		text("serve.tls_cert", func(c *Config) *string { return &c.Serve.TLSCert }, absolutePath),
		text("serve.tls_key", func(c *Config) *string { return &c.Serve.TLSKey }, absolutePath),
		text("serve.client_ca", func(c *Config) *string { return &c.Serve.ClientCA }, absolutePath),
		flag("serve.behind_proxy", func(c *Config) *bool { return &c.Serve.BehindProxy }),
		count("serve.workers", func(c *Config) *int64 { return &c.Serve.Workers }, 0, 4096),
		{name: "serve.memory", set: setServeMemory, show: func(c *Config) any { return c.Serve.Memory }},
		count("serve.queue", func(c *Config) *int64 { return &c.Serve.Queue }, 0, 1<<20),
		text("serve.grace", func(c *Config) *string { return &c.Serve.Grace }, graceTime),
		text("serve.turn_idle", func(c *Config) *string { return &c.Serve.TurnIdle }, turnIdle),
		text("serve.otlp", func(c *Config) *string { return &c.Serve.OTLP }, optional(webAddress)),
	}
}

// setServeMemory takes 0, or as much as one small run needs: each takes 4 MiB
// beside its own memory, so that of less no run has any.
func setServeMemory(w *tomlfile.Walk, name string, v *tomlfile.Value, c *Config) {
	const least, most = 8 << 20, 1 << 50
	if !w.Is(v, name, tomlfile.Integer) {
		return
	}
	if v.Int != 0 && (v.Int < least || v.Int > most) {
		w.Errorf(v.Pos, "each run takes its memory_bytes and 4 MiB of it; leave it out for three quarters of what there is",
			"%s must be 0 or from %d to %d bytes, not %d", name, least, most, v.Int)
		return
	}
	c.Serve.Memory = v.Int
}

// optional is ok for all but "".
func optional(ok check) check {
	return func(s string) string {
		if s == "" {
			return ""
		}
		return ok(s)
	}
}

func absolutePath(s string) string {
	if s == "" {
		return ""
	}
	if msg := absolute(s); msg != "" {
		return "must be the absolute path of a file"
	}
	return ""
}

// graceTime is a time that a run may go on for.
func graceTime(s string) string {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > time.Hour {
		return `must be a time from "0s" to "1h", such as "10s"`
	}
	return ""
}

// turnIdle is a time that a run waits for its next input. There is no such thing
// as none: what waits holds a worker.
func turnIdle(s string) string {
	d, err := time.ParseDuration(s)
	if err != nil || d < time.Second || d > 24*time.Hour {
		return `must be a time from "1s" to "24h", such as "10m"`
	}
	return ""
}

// hostName is the check of a name, with a port or without, that a Host header may
// have.
func hostName(s string) string {
	const form = `must be a host name or an address, with a port or without, such as "agents.example:8443"`
	name, port, found := strings.Cut(s, ":")
	if _, err := netip.ParseAddr(s); err == nil {
		return ""
	}
	if _, err := netip.ParseAddrPort(s); err == nil {
		return ""
	}
	if found && hostPort("x:"+port) != "" || name == "" {
		return form
	}
	for _, label := range strings.Split(name, ".") {
		if label == "" || len(label) > 63 ||
			strings.Trim(label, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") != "" {
			return form
		}
	}
	return ""
}
