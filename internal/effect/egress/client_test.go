package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
)

var somewhere = netip.MustParseAddr("93.184.215.14")

// fixed is a resolver that knows one answer.
func fixed(addrs ...netip.Addr) func(context.Context, string) ([]netip.Addr, error) {
	return func(context.Context, string) ([]netip.Addr, error) { return addrs, nil }
}

// through is a dialer that leads everything to server, and what it was asked.
func through(server *httptest.Server) (func(context.Context, string, string) (net.Conn, error), *[]string) {
	asked := new([]string)
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		*asked = append(*asked, address)
		var d net.Dialer
		return d.DialContext(ctx, network, server.Listener.Addr().String())
	}, asked
}

func request(t *testing.T, text string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func hello(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		_,
			_ = rw.Write([]byte("hello"))
	}))
	t.Cleanup(s.Close)
	return s
}

// One bad address spoils the answer, wherever it stands, and nothing is dialled.
func TestOneBadAddressSpoilsTheAnswer(t *testing.T) {
	s := hello(t)
	bad := netip.MustParseAddr("10.0.0.1")
	refused := &AddressError{Host: "api.example.com", Addr: bad, Name: "private"}
	for _, c := range []struct {
		addrs []netip.Addr
		want  error
	}{
		{[]netip.Addr{somewhere}, nil},
		{[]netip.Addr{somewhere, somewhere}, nil},
		{[]netip.Addr{bad}, refused},
		{[]netip.Addr{somewhere, bad}, refused},
		{[]netip.Addr{bad, somewhere}, refused},
		{append(slices.Repeat([]netip.Addr{somewhere}, maxTries), bad), refused},
		{nil, errNoName},
		{slices.Repeat([]netip.Addr{somewhere}, maxAnswers), nil},
		{slices.Repeat([]netip.Addr{somewhere}, maxAnswers+1), errManyAddresses},
	} {
		dial, asked := through(s)
		client := New(Config{Resolve: fixed(c.addrs...), Dial: dial})
		resp, err := client.Send(request(t, "http://api.example.com/"), true)
		if err == nil {
			_ = resp.Body.Close()
		}
		client.Close()
		if !reflect.DeepEqual(err, c.want) || err != nil && len(*asked) > 0 {
			t.Errorf("%v: %v, want %v, dialled %v", c.addrs, err, c.want, *asked)
		}
	}
}

// The address that was judged is the one that is connected to, in its own form.
func TestTheJudgedAddressIsDialled(t *testing.T) {
	dial, asked := through(hello(t))
	client := New(Config{Resolve: fixed(netip.MustParseAddr("::ffff:93.184.215.14")), Dial: dial})
	defer client.Close()
	resp, err := client.Send(request(t, "http://api.example.com/"), false)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if !slices.Equal(*asked, []string{"93.184.215.14:80"}) {
		t.Errorf("dialled %v", *asked)
	}
}

// The next address is tried when one does not answer, and only so many.
func TestOtherAddressesAreTried(t *testing.T) {
	s := hello(t)
	tries := 0
	refuse := maxTries - 1
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		if tries++; tries <= refuse {
			return nil, &net.OpError{Op: "dial", Err: errors.New("no")}
		}
		var d net.Dialer
		return d.DialContext(ctx, network, s.Listener.Addr().String())
	}
	client := New(Config{Resolve: fixed(slices.Repeat([]netip.Addr{somewhere}, 20)...), Dial: dial})
	defer client.Close()
	resp, err := client.Send(request(t, "http://api.example.com/"), false)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	client.Close()
	tries, refuse = 0, 100
	other := New(Config{Resolve: client.cfg.Resolve, Dial: dial})
	if _, err := other.Send(request(t, "http://b.example.com/"), false); !errors.Is(err, errConnect) || tries != maxTries {
		t.Errorf("%v after %d tries", err, tries)
	}
}

// Send asks again what its caller should have asked.
func TestSendTakesNothingOnTrust(t *testing.T) {
	s := hello(t)
	dial, asked := through(s)
	client := New(Config{Resolve: fixed(somewhere), Dial: dial})
	defer client.Close()
	for _, u := range []*url.URL{
		{Scheme: "http", Host: "127.0.0.1"},
		{Scheme: "http", Host: "localhost"},
		{Scheme: "http", Host: "2130706433"},
		{Scheme: "ftp", Host: "api.example.com"},
		{Scheme: "ftp", Host: "api.example.com:80"},
		{Scheme: "http", Host: "api.example.com", Opaque: "//other.example.com/"},
		{Scheme: "http", Host: "api.example.com", User: url.User("me")},
		{Scheme: "http", Opaque: "api.example.com"},
		{Scheme: "http", Host: ""},
	} {
		resp, err := client.Send(&http.Request{Method: "GET", URL: u, Header: http.Header{}}, false)
		if err == nil {
			_ = resp.Body.Close()
		}
		if address := (*AddressError)(nil); err != errTarget && !errors.As(err, &address) {
			t.Errorf("%v: %v", u, err)
		}
	}
	if len(*asked) != 0 {
		t.Errorf("dialled %v", *asked)
	}
	resp, err := client.Send(request(t, "http://localhost/"), true)
	if err != nil {
		t.Fatalf("control: localhost by its name: %v", err)
	}
	_ = resp.Body.Close()
	if !slices.Equal(*asked, []string{"127.0.0.1:80"}) {
		t.Errorf("dialled %v: no resolver says where localhost is", *asked)
	}
}

// A client that is closed sends nothing more; closing twice is no harm.
func TestClosed(t *testing.T) {
	client := New(Config{})
	client.Close()
	client.Close()
	if _, err := client.Send(request(t, "http://1.1.1.1/"), false); err == nil {
		t.Error("sent")
	}
}

// What goes wrong is told in words that hold nothing of request or answer.
func TestErrorsArePlain(t *testing.T) {
	dns := &net.DNSError{Err: "server misbehaving", Name: "SECRET.example", Server: "10.9.8.7:53"}
	for _, c := range []struct{ from, to error }{
		{dns, errLookup},
		{&net.DNSError{IsNotFound: true, Name: "SECRET"}, errNoName},
		{&net.OpError{Op: "dial", Err: errors.New("SECRET")}, errConnect},
		{&net.OpError{Op: "dial", Err: syscall.ENETUNREACH}, errUnreachable},
		{&net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH}, errUnreachable},
		{&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, errUnreachable},
		{&net.OpError{Op: "read", Err: errors.New("SECRET")}, errBroken},
		{&tls.CertificateVerificationError{}, errCertificate},
		{x509.UnknownAuthorityError{}, errCertificate},
		{x509.HostnameError{}, errCertificate},
		{x509.CertificateInvalidError{}, errCertificate},
		{tls.RecordHeaderError{}, errTLS},
		{tls.AlertError(40), errTLS},
		{errors.New("malformed HTTP response \"SECRET\""), errBroken},
		{context.DeadlineExceeded, context.DeadlineExceeded},
		{context.Canceled, context.Canceled},
	} {
		if got := plain(c.from); got != c.to || strings.Contains(got.Error(), "SECRET") {
			t.Errorf("%v: %v, want %v", c.from, got, c.to)
		}
	}
	s := hello(t)
	address := s.Listener.Addr().String()
	s.Close()
	client := New(Config{})
	defer client.Close()
	if _, err := client.Send(request(t, "http://"+address+"/"), true); err != errRefused {
		t.Errorf("nobody listens: %v", err)
	}
}

// The real resolver asks nobody for a number that others take for an address.
func TestTheResolverTakesNoDisguises(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // no packet leaves the machine
	for _, name := range []string{"2130706433.", "0x7f000001.", "127.1.", "0177.0.0.1."} {
		if addrs, err := New(Config{}).cfg.Resolve(ctx, name); err == nil {
			t.Errorf("%s is %v", name, addrs)
		}
	}
}

// Names of rlp's own are looked up nowhere, and lead to nothing; the control is a name
// that only looks like one.
func TestOwnNamesAreNotLookedUp(t *testing.T) {
	s := hello(t)
	dial, _ := through(s)
	var asked []string
	c := New(Config{Dial: dial, Resolve: func(_ context.Context, name string) ([]netip.Addr, error) {
		asked = append(asked, name)
		return []netip.Addr{somewhere}, nil
	}})
	t.Cleanup(c.Close)
	for host, want := range map[string]error{
		"model.rlp": errNoName, "api.example.com.rlp": errNoName, "model.rlp.example.com": nil,
	} {
		if _, err := c.Send(request(t, "http://"+host+"/"), true); !errors.Is(err, want) {
			t.Errorf("%s: %v", host, err)
		}
		if _, err := c.Connect(t.Context(), host+":80", true); !errors.Is(err, want) {
			t.Errorf("%s: %v", host, err)
		}
	}
	if !slices.Equal(asked, []string{"model.rlp.example.com.", "model.rlp.example.com."}) {
		t.Errorf("looked up %q", asked)
	}
}
