package access

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Listener is how the service is about to listen on TCP.
type Listener struct {
	Addr        string // host:port, as serve.listen has it
	TLS         bool   // serve.tls_cert and serve.tls_key are set
	BehindProxy bool   // serve.behind_proxy
	Proofs      int    // tokens and certificates that are good, the operator's own included
}

// Check refuses an address on which tokens would travel in the clear, or at
// which nobody could prove anything. It returns the port.
func (l Listener) Check() (port uint16, err error) {
	i := strings.LastIndexByte(l.Addr, ':')
	if i < 0 {
		return 0, fmt.Errorf("serve.listen: %q is no address and port, such as 127.0.0.1:8770", l.Addr)
	}
	n, err := strconv.ParseUint(l.Addr[i+1:], 10, 16)
	if err != nil {
		return 0, fmt.Errorf("serve.listen: %q is no address and port, such as 127.0.0.1:8770", l.Addr)
	}
	if l.isLoopback(l.Addr[:i]) {
		return uint16(n), nil
	}
	if !l.TLS && !l.BehindProxy {
		return 0, fmt.Errorf("serve.listen: %s can be reached from other machines, and tokens would go there in the clear; "+
			"set serve.tls_cert and serve.tls_key, or serve.behind_proxy = true if a proxy in front speaks TLS, or listen on "+
			"127.0.0.1", l.Addr)
	}
	if l.Proofs == 0 {
		return 0, fmt.Errorf("serve.listen: %s can be reached from other machines, and nobody there could prove who they "+
			"are; "+
			"make a token with rlp token new, or set serve.token_secret, or listen on 127.0.0.1", l.Addr)
	}
	return uint16(n), nil
}

// isLoopback reports whether only this machine reaches the host. A name but
// localhost may lead anywhere.
func (l Listener) isLoopback(host string) bool {
	a, _ := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return host == "localhost" || a.Unmap().IsLoopback()
}

// maxPEM bounds the files of certificates and keys.
const maxPEM = 1 << 20

// TLSConfig is what the TCP listener speaks: TLS 1.3, with the certificate and
// key of two PEM files, which are read again when they were replaced; log, if
// there is one, is told of that and of what keeps them from being taken. clientCA,
// if it is not "", is a PEM file of those who sign certificates of clients: they
// are its ClientCAs, which [Options] are to have. Who brings none may bring a
// token.
func TLSConfig(certFile, keyFile, clientCA string, log *slog.Logger) (*tls.Config, error) {
	if certFile == "" || keyFile == "" {
		return nil, errors.New("serve.tls_cert and serve.tls_key go together: name both files")
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	pair := &keyPair{certFile: certFile, keyFile: keyFile, log: log}
	if _, err := pair.get(nil); err != nil {
		return nil, err
	}
	c := &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: pair.get, NextProtos: []string{"h2", "http/1.1"}}
	if clientCA == "" {
		return c, nil
	}
	info, err := os.Stat(clientCA)
	if err != nil {
		return nil, fmt.Errorf("serve.client_ca: %w", err)
	}
	if info.Mode().Perm()&0o022 != 0 || info.Size() > maxPEM {
		return nil, fmt.Errorf("serve.client_ca: %s may be written by others, or is too long; run chmod go-w on it", clientCA)
	}
	text, err := os.ReadFile(clientCA)
	if err != nil {
		return nil, fmt.Errorf("serve.client_ca: %w", err)
	}
	c.ClientCAs = x509.NewCertPool()
	if !c.ClientCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("serve.client_ca: %s holds no certificate in PEM", clientCA)
	}
	c.ClientAuth = tls.RequestClientCert // [Access] holds it against ClientCAs, and can say why not
	c.SessionTicketsDisabled = true      // each connection proves its certificate again
	return c, nil
}

// A keyPair is the certificate of the service, as its files have it.
type keyPair struct {
	certFile, keyFile string
	log               *slog.Logger

	mu        sync.Mutex
	said      string // why what lies there now is not taken
	cert, key fs.FileInfo
	pair      *tls.Certificate
}

// get is the certificate of now. Files that cannot be taken, perhaps because they
// are being replaced, leave the one that was there.
func (k *keyPair) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	cert, err1 := os.Stat(k.certFile)
	key, err2 := os.Stat(k.keyFile)
	err := errors.Join(err1, err2)
	if err == nil && k.pair != nil && unchanged(cert, k.cert) && unchanged(key, k.key) {
		return k.pair, nil
	}
	if err == nil && key.Mode().Perm()&0o027 != 0 {
		err = fmt.Errorf("%s has mode %#o, so that others can read or change it; run chmod 600 on it", k.keyFile,
			key.Mode().Perm())
	}
	var fresh tls.Certificate
	if err == nil {
		fresh, err = tls.LoadX509KeyPair(k.certFile, k.keyFile)
	}
	switch {
	case err == nil:
		if k.pair != nil {
			k.log.Info("tls.renewed", "until", fresh.Leaf.NotAfter.UTC().Format(time.RFC3339))
		}
		k.cert, k.key, k.pair, k.said = cert, key, &fresh, ""
	case k.pair == nil:
		return nil, fmt.Errorf("serve.tls_cert, serve.tls_key: %w", err)
	case err.Error() != k.said:
		k.said = err.Error()
		k.log.Warn("tls.not_renewed", "message", k.said, "until", k.pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return k.pair, nil
}
