package egress

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What goes to this host, by whichever address, is marked, and what goes elsewhere is not.
func TestWhatGoesToThisHostIsMarked(t *testing.T) {
	for address, want := range map[string]int{
		"127.0.0.1:9": AgentsMark, "127.8.8.8:9": AgentsMark, "0.0.0.0:9": AgentsMark, "192.0.2.1:9": 0,
		"[::1]:9": AgentsMark, "[::]:9": AgentsMark, "[2001:db8::1]:9": 0,
	} {
		network, domain, level, option := "tcp4", unix.AF_INET, unix.IPPROTO_IP, unix.IP_TOS
		if strings.HasPrefix(address, "[") {
			network, domain, level, option = "tcp6", unix.AF_INET6, unix.IPPROTO_IPV6, unix.IPV6_TCLASS
		}
		fd, err := unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		f := os.NewFile(uintptr(fd), address)
		raw, err := f.SyscallConn()
		if err == nil {
			err = marked(network, address, raw)
		}
		if err != nil {
			t.Fatalf("%s: %v", address, err)
		}
		got, err := unix.GetsockoptInt(fd, level, option)
		if err = errors.Join(err, f.Close()); err != nil || got != want {
			t.Errorf("%s: %#x, want %#x: %v", address, got, want, err)
		}
	}
}
