package access

import (
	"crypto/x509"
	"errors"
	"log/slog"
	"net/http"
	"time"
)

// byCertificate judges a client certificate. TLS proved that its key is there,
// and nothing else.
func (a *Access) byCertificate(r *http.Request) (*proof, error) {
	cert, now := r.TLS.PeerCertificates[0], a.o.Now()
	refuse := func(logged, why string) (*proof, error) {
		a.tell(slog.LevelWarn, "access.denied", "from", a.source(r), "cert_sha256", hashOf(cert), "why", logged)
		return nil, a.unauthorized(why)
	}
	switch {
	case ended(cert, now):
		return refuse("the certificate is expired", "this client certificate ended at "+
			cert.NotAfter.UTC().Format(time.RFC3339)+"; bring a renewed one")
	case now.Before(cert.NotBefore):
		return refuse("the certificate is not good yet", "this client certificate is good from "+
			cert.NotBefore.UTC().Format(time.RFC3339)+" on; bring another one until then")
	}
	if err := a.signed(r, now); err != nil {
		return refuse("the certificate is not signed by serve.client_ca", signedWhy(err))
	}
	if a.o.Tokens == nil {
		return refuse("no such certificate", unboundCert)
	}
	record, err := a.o.Tokens.byCert(cert)
	if err != nil {
		a.tell(slog.LevelError, "access.unreadable", "error", err.Error())
		return nil, denied(http.StatusServiceUnavailable, "unavailable",
			"certificates cannot be judged now; the service's log says why")
	}
	if record == nil {
		return refuse("no such certificate", unboundCert)
	}
	p, err := a.byRecord(r.Context(), record)
	if err != nil {
		return nil, err
	}
	p.cert = cert
	if p.caller.Until.IsZero() || cert.NotAfter.Before(p.caller.Until) {
		p.caller.Until = cert.NotAfter
	}
	return p, nil
}

// ended reports whether a certificate is over, as everything that ends here is at
// the instant that it names.
func ended(cert *x509.Certificate, now time.Time) bool { return !now.Before(cert.NotAfter) }

const unboundCert = "this client certificate stands for nobody here; the operator binds it with rlp token new --cert"

// signedWhy says what to do about a certificate that no authority signed for this.
func signedWhy(err error) string {
	var invalid x509.CertificateInvalidError
	if errors.As(err, &invalid) && invalid.Reason == x509.IncompatibleUsage {
		return "this client certificate is not made to prove a client; bring one whose extended key usage is clientAuth, " +
			"or that has none"
	}
	return "no authority that serve.client_ca names signed this client certificate; bring one that an authority of the " +
		"operator's signed, with what lies between the two"
}

// errNoAuthority says that there is nobody whose certificates are believed.
var errNoAuthority = errors.New("serve.client_ca is not set")

// signed reports whether an authority of the operator's signed what the
// connection shows for clients, once for each connection.
func (a *Access) signed(r *http.Request, now time.Time) error {
	p := peerOf(r.Context())
	if p == nil {
		return a.verify(r.TLS.PeerCertificates, now)
	}
	p.shown.Do(func() { p.signed = a.verify(r.TLS.PeerCertificates, now) })
	return p.signed
}

// verify holds a chain against the operator's authorities, and no others: without
// a pool the library would believe those of the system.
func (a *Access) verify(chain []*x509.Certificate, now time.Time) error {
	if a.o.ClientCAs == nil {
		return errNoAuthority
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots: a.o.ClientCAs, Intermediates: between, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return err
}
