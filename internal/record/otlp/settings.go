package otlp

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// A Signal is one of what is told to collectors.
type Signal string

// The signals.
const (
	Traces  Signal = "traces"
	Metrics Signal = "metrics"
)

// usualTimeout is that of OpenTelemetry.
const usualTimeout = 10 * time.Second

// Settings say where a signal goes, and how.
type Settings struct {
	URL     string
	Header  http.Header
	TLS     *tls.Config // of an https URL
	Gzip    bool
	Timeout time.Duration // of one try
}

// variables reads those of OpenTelemetry's specification.
type variables struct {
	signal Signal
	env    func(string) string
}

const prefix = "OTEL_EXPORTER_OTLP_"

// value is that of a signal's own variable, or of the one for all signals, and the
// name of the one that it is of.
func (v variables) value(name string) (value, of string) {
	own := prefix + strings.ToUpper(string(v.signal)) + "_" + name
	if s := strings.TrimSpace(v.env(own)); s != "" {
		return s, own
	}
	return strings.TrimSpace(v.env(prefix + name)), prefix + name
}

// ReadSettings are those of a signal: base is the address that the operator's own
// settings name, and comes before the variables' if it is not empty. What cannot be
// meant is refused, and is told by the variable's name without its value.
func ReadSettings(signal Signal, base string, env func(string) string) (*Settings, error) {
	v := variables{signal, env}
	s := &Settings{Timeout: usualTimeout}
	for _, read := range []func(*Settings) error{
		func(s *Settings) error { return v.address(s, base) },
		v.headers, v.compression, v.timeout, v.secure,
	} {
		if err := read(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// address is where the signal goes: beneath the base of all, or where its own
// variable says.
func (v variables) address(s *Settings, base string) error {
	of, own := "serve.otlp", false
	if base == "" {
		if p, name := v.value("PROTOCOL"); p != "" && p != "http/protobuf" {
			return fmt.Errorf("%s: only http/protobuf is spoken; unset it, and name the port at which the collector takes "+
				"HTTP (usually 4318)", name)
		}
		base, of = v.value("ENDPOINT")
		own = of != prefix+"ENDPOINT"
	}
	u, err := Address(base)
	if err != nil {
		return fmt.Errorf("%s %w", of, err)
	}
	switch {
	case !own:
		u = u.JoinPath("v1", string(v.signal))
	case u.Path == "":
		u.Path = "/"
	}
	s.URL = u.String()
	return nil
}

func (v variables) headers(s *Settings) (err error) {
	text, name := v.value("HEADERS")
	if s.Header, err = ParseHeaders(text); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (v variables) compression(s *Settings) error {
	text, name := v.value("COMPRESSION")
	switch text {
	case "", "none":
	case "gzip":
		s.Gzip = true
	default:
		return fmt.Errorf("%s: must be gzip or none", name)
	}
	return nil
}

func (v variables) timeout(s *Settings) error {
	text, name := v.value("TIMEOUT")
	if text == "" {
		return nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || n == 0 {
		return fmt.Errorf("%s: must be a number of milliseconds above 0, such as 10000", name)
	}
	s.Timeout = time.Duration(n) * time.Millisecond
	return nil
}

// secure reads whom to trust and what to be known by. Without TLS neither would be
// heeded, and whoever set them would not know.
func (v variables) secure(s *Settings) error {
	ca, caOf := v.value("CERTIFICATE")
	cert, certOf := v.value("CLIENT_CERTIFICATE")
	key, keyOf := v.value("CLIENT_KEY")
	set := caOf
	switch {
	case ca == "" && cert == "" && key == "":
		return nil
	case (cert == "") != (key == ""):
		return fmt.Errorf("%s and %s: both are needed, or neither", certOf, keyOf)
	case ca == "":
		set = certOf
	}
	if !strings.HasPrefix(s.URL, "https:") {
		return fmt.Errorf("%s: the address of the collector is plain http; begin it with https, or unset the variable", set)
	}
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		text, err := os.ReadFile(ca)
		if err != nil {
			return fmt.Errorf("%s: %w", caOf, err)
		}
		s.TLS.RootCAs = x509.NewCertPool()
		if !s.TLS.RootCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("%s: there is no certificate in the file; it must have some in PEM", caOf)
		}
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return fmt.Errorf("%s and %s: %w", certOf, keyOf, err)
		}
		s.TLS.Certificates = []tls.Certificate{pair}
	}
	return nil
}
