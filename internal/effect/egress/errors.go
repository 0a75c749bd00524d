package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"syscall"
)

// What went wrong, in words that hold nothing of the request, of the answer or
// of the network behind this machine: they go into records and to guests.
var (
	errTarget        = errors.New("the URL is not a canonical one of https or http")
	errNoName        = errors.New("the name has no address")
	errLookup        = errors.New("the name could not be looked up")
	errManyAddresses = errors.New("the name has too many addresses")
	errRefused       = errors.New("the connection was refused")
	errUnreachable   = errors.New("the host cannot be reached")
	errConnect       = errors.New("no connection could be made")
	errProtocol      = errors.New("the answer is no HTTP")
	errCertificate   = errors.New("the host's certificate is not one that is trusted for its name")
	errTLS           = errors.New("the host does not speak TLS as it should")
	errBroken        = errors.New("the connection broke")
)

// plain is err in those words. What is of use to the caller as it is stays: a
// refusal of an address, the end of a context.
func plain(err error) error {
	var address *AddressError
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &address):
		return address
	case errors.Is(err, context.Canceled):
		return context.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return context.DeadlineExceeded
	case errors.Is(err, errNoName), errors.Is(err, errManyAddresses):
		return err
	case errors.As(err, &dns):
		if dns.IsNotFound {
			return errNoName
		}
		return errLookup
	case isCertificate(err):
		return errCertificate
	case isTLS(err):
		return errTLS
	case errors.As(err, &op) && op.Op == "dial":
		return dialing(op)
	}
	return errBroken
}

func dialing(op *net.OpError) error {
	switch {
	case errors.Is(op, syscall.ECONNREFUSED):
		return errRefused
	case errors.Is(op, syscall.ENETUNREACH), errors.Is(op, syscall.EHOSTUNREACH), op.Timeout():
		return errUnreachable
	}
	return errConnect
}

func isCertificate(err error) bool {
	var verify *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	return errors.As(err, &verify) || errors.As(err, &authority) || errors.As(err, &name) || errors.As(err, &invalid)
}

func isTLS(err error) bool {
	var record tls.RecordHeaderError
	var alert tls.AlertError
	return errors.As(err, &record) || errors.As(err, &alert)
}
