package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/serve/client"
	"runloop.dev/rlp/launcher"
)

// remoteFlags say which service is asked and what proves who asks. A token comes
// from a file or from the environment: what is in argv is everybody's to read.
type remoteFlags struct {
	remote, tokenFile, ca, cert, key string
}

// atSocket is the value of --remote without one.
const atSocket = "socket"

// tokenVariable is the variable that a token may be in.
const tokenVariable = "RUNLOOP_TOKEN"

func (f *remoteFlags) register(fs *pflag.FlagSet, about string) {
	fs.StringVar(&f.remote, "remote", "", about+" (`URL`; without one, that of the home's socket)")
	fs.Lookup("remote").NoOptDefVal = atSocket
	fs.StringVar(&f.tokenFile, "token-file", "", "with --remote: the `FILE` where the token is; or in "+tokenVariable)
	fs.StringVar(&f.ca, "ca", "", "with --remote: a `FILE` of certificates, PEM, that the service's is held against")
	fs.StringVar(&f.cert, "cert", "", "with --remote: a `FILE` with a client certificate, PEM")
	fs.StringVar(&f.key, "key", "", "with --remote: the `FILE` with its key, PEM")
}

// joined refuses an address that stands behind --remote as an argument of its own:
// the flag would ask the socket, and the address would be a bundle.
func (f *remoteFlags) joined(args []string) error {
	if f.remote == atSocket && len(args) > 0 && strings.Contains(args[0], "://") {
		return usagef("the address belongs to the flag: write --remote=%s", printable(args[0]))
	}
	return nil
}

// service is a client of the service that the flags name.
func (a *app) service(f remoteFlags) (*client.Client, error) {
	o := client.Options{}
	if a.tenant != home.DefaultTenant {
		o.Tenant = a.tenant
	}
	if f.remote == "" || f.remote == atSocket {
		dir, err := home.Locate(a.homeFlag, a.getenv("RUNLOOP_HOME"), a.getenv("HOME"))
		if err != nil {
			return nil, inputErr(err)
		}
		o.Socket = home.ServeSocket(dir)
	} else {
		o.URL = f.remote
	}
	var err error
	if o.Token, err = bearer(a, f); err != nil {
		return nil, inputErr(err)
	}
	if o.TLS, err = f.tls(); err != nil {
		return nil, inputErr(err)
	}
	c, err := client.New(o)
	if err != nil {
		return nil, usagef("--remote: %w", err)
	}
	return c, nil
}

// bearer is the token, "" if there is none.
func bearer(a *app, f remoteFlags) (string, error) {
	if f.tokenFile == "" {
		return strings.TrimSpace(a.getenv(tokenVariable)), nil
	}
	const most = 4096
	data, err := home.ReadPrivate(f.tokenFile, most)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(data))
	if token == "" {
		return "", errors.New("the file of --token-file is empty; write into it what rlp token new printed")
	}
	return token, nil
}

// tls is what a connection is held against; nil: what the system trusts.
func (f *remoteFlags) tls() (*tls.Config, error) {
	if (f.cert == "") != (f.key == "") {
		return nil, errors.New("--cert and --key go together; give both")
	}
	if f.ca == "" && f.cert == "" {
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.ca != "" {
		data, err := os.ReadFile(f.ca)
		if err != nil {
			return nil, err
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(data) {
			return nil, errors.New("--ca has no certificate in PEM")
		}
	}
	if f.cert != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, err
		}
		// Whatever authorities the service names: a certificate that it does not take
		// is refused, and not left out for what the connection proves.
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	return cfg, nil
}

// remoteErr gives what a service answered the status that a launch here would
// have.
func remoteErr(ctx context.Context, err error) error {
	var told *client.Error
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return &statusError{Status: launcher.StatusCancelled, Err: errors.New("interrupted by the operator")}
	case !errors.As(err, &told):
		return &statusError{Status: launcher.StatusUnavailable, Err: err}
	}
	switch {
	case told.Status == 401, told.Status == 403:
		return &statusError{Status: launcher.StatusPolicy, Err: toldErr(told)}
	case told.Status == 429, told.Status >= 500:
		return &statusError{Status: launcher.StatusUnavailable, Err: toldErr(told)}
	}
	return inputErr(toldErr(told))
}

// toldErr is all that was wrong, a line each.
func toldErr(e *client.Error) error {
	lines := []string{e.Error()}
	if len(e.Fields) > 1 {
		for _, f := range e.Fields {
			lines = append(lines, f.Field+": "+f.Message)
		}
	}
	return errors.New(strings.Join(lines, "\n"))
}
