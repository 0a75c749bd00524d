package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/serve/access"
	"runloop.dev/rlp/internal/serve/api"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/run"
)

// None is what says that one of the two ways in is not wanted.
const None = "none"

// bounded is a listener with its share of the places.
func (s *Server) bounded(l net.Listener) net.Listener {
	most, address := api.Places(api.Descriptors())
	if l.Addr().Network() != "unix" {
		most = address
	}
	return api.Bounded(l, most, s.Now, access.SourceOf)
}

// A served listener, and how it is reached.
type served struct {
	net.Listener
	url string
}

// claim makes this process the one that serves the home.
func (s *Server) claim() (*os.File, error) {
	if err := home.Make(s.runDir()); err != nil {
		return nil, compose.InputErr(err)
	}
	f, err := os.OpenFile(filepath.Join(s.runDir(), "serve.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, compose.InputErr(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, &compose.Error{
			Status: run.StatusUnavailable,
			Err:    fmt.Errorf("another rlp serve serves %s; stop it first, or give --home", s.Home.Dir()),
		}
	}
	return f, nil
}

// listen opens the socket and the address, or takes those that the service
// manager has opened.
func (s *Server) listen(ctx context.Context) error {
	passed, err := s.passed()
	if err != nil {
		return err
	}
	if passed {
		return nil
	}
	var lc net.ListenConfig
	if path := s.socketPath(); path != None {
		l, err := listenAt(ctx, path)
		if err != nil {
			return &compose.Error{Status: run.StatusUnavailable, Err: fmt.Errorf("serving at %s: %w", path, err)}
		}
		s.listeners = append(s.listeners, served{s.bounded(l), "unix:" + path})
	}
	address := s.Listen
	if address == "" {
		address = s.Config.Serve.Listen
	}
	if address == None {
		if len(s.listeners) == 0 {
			return compose.Usagef("--listen none and --socket none leave nothing to serve at")
		}
		return nil
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return errors.Join(compose.Usagef("--listen %s: write it as HOST:PORT, such as 127.0.0.1:8770", address), s.close())
	}
	if err := s.mayListen(address); err != nil {
		return errors.Join(err, s.close())
	}
	l, err := lc.Listen(ctx, tcpOf(address), address)
	if err != nil {
		err = fmt.Errorf("serving at %s: %w", address, err)
		if errors.Is(err, syscall.EADDRINUSE) {
			err = fmt.Errorf("%w; stop what listens there, or give another address as --listen (none is the socket alone)", err)
		}
		return errors.Join(&compose.Error{Status: run.StatusUnavailable, Err: err}, s.close())
	}
	return s.addTCP(l)
}

// tcpOf is the network of an address: 0.0.0.0 is every address of IPv4, and [::]
// every one there is.
func tcpOf(address string) string {
	if at, err := netip.ParseAddrPort(address); err == nil && at.Addr().Is4() {
		return "tcp4"
	}
	return "tcp"
}

// addTCP adds a listener, behind TLS where the operator has a certificate.
func (s *Server) addTCP(l net.Listener) error {
	scheme := "http"
	cfg, err := s.tls()
	if err != nil {
		return errors.Join(err, l.Close(), s.close())
	}
	url := l.Addr().String()
	if tcp, is := l.Addr().(*net.TCPAddr); is {
		s.wired.port = uint16(tcp.Port) // the one that was given where any would do
	}
	l = s.bounded(l) // beneath TLS, by which the server knows its connections
	if cfg != nil {
		scheme, l = "https", tls.NewListener(l, cfg)
	}
	s.listeners = append(s.listeners, served{l, scheme + "://" + url})
	return nil
}

// socketPath is where the socket lies.
func (s *Server) socketPath() string {
	if s.Socket != "" {
		return s.Socket
	}
	return home.ServeSocket(s.Home.Dir())
}

// listenAt listens at a path where nobody does. What a service that was killed
// left there is taken away; nothing else is.
func listenAt(ctx context.Context, path string) (net.Listener, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode().Type() != fs.ModeSocket:
		return nil, errors.New("something else lies there")
	default:
		var d net.Dialer
		if c, err := d.DialContext(ctx, "unix", path); err == nil {
			c.Close()
			return nil, errors.New("somebody serves there already")
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("%w (a path of a socket has at most 107 bytes; --socket gives another)", err)
	}
	if err := os.Chmod(path, 0o600); err != nil { // the folder kept others out until here
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// firstPassed is the first descriptor that a service manager passes.
const firstPassed = 3

// passed takes the listeners that the service manager opened, if it did.
func (s *Server) passed() (bool, error) {
	n, err := strconv.Atoi(s.Env("LISTEN_FDS"))
	if err != nil || n <= 0 || s.Env("LISTEN_PID") != strconv.Itoa(os.Getpid()) {
		return false, nil
	}
	for fd := firstPassed; fd < firstPassed+n; fd++ {
		syscall.CloseOnExec(fd)
		f := os.NewFile(uintptr(fd), "passed")
		l, err := net.FileListener(f)
		f.Close()
		if err != nil {
			return false, errors.Join(&compose.Error{
				Status: run.StatusUnavailable,
				Err:    fmt.Errorf("taking descriptor %d from the service manager: %w", fd, err),
			}, s.close())
		}
		if l.Addr().Network() == "unix" {
			s.listeners = append(s.listeners, served{s.bounded(l), "unix:" + l.Addr().String()})
			continue
		}
		if err := s.mayListen(l.Addr().String()); err != nil {
			return false, errors.Join(err, l.Close(), s.close())
		}
		if err := s.addTCP(l); err != nil {
			return false, err
		}
	}
	return true, nil
}

// close closes the listeners.
func (s *Server) close() error {
	var errs []error
	for _, l := range s.listeners {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
