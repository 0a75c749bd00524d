package netns

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

var update = flag.Bool("update", false, "write the golden files anew")

// messages are all that Make says, by both ways.
func messages() string {
	all := families()
	var b strings.Builder
	for _, part := range []struct {
		name string
		list []message
	}{
		{"up and IPv4", append(up(), all[0].everything()...)},
		{"IPv6", all[1].everything()},
		{"tproxy", transparent().rules(all[:])},
		{"tproxy, IPv4 alone", transparent().rules(all[:1])},
		{"redirect", redirected().rules(all[:])},
	} {
		fmt.Fprintf(&b, "%s\n%s", part.name, hex.Dump(encode(part.list)))
	}
	return b.String()
}

// What the kernel is told is the same bytes on every machine of one byte order:
// what works on one does on another of its kind.
func TestMessages(t *testing.T) {
	const golden = "testdata/messages.txt"
	got := messages()
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("go test -update writes it anew; got\n%s", got)
	}
}

func TestAnswers(t *testing.T) {
	header := func(size uint32, kind uint16) []byte {
		b := encode([]message{{kind: kind}})
		b[0] = byte(size)
		return b
	}
	for name, c := range map[string]struct {
		in   []byte
		acks int
		err  error
	}{
		"none":            {nil, 0, nil},
		"one":             {append(header(20, unix.NLMSG_ERROR), 0, 0, 0, 0), 1, nil},
		"another message": {header(16, unix.NLMSG_NOOP), 0, nil},
		"an error":        {append(header(20, unix.NLMSG_ERROR), 0xfe, 0xff, 0xff, 0xff), 0, unix.ENOENT},
		"cut off":         {header(16, unix.NLMSG_ERROR)[:12], 0, errAnswer},
		"too long":        {header(40, unix.NLMSG_ERROR), 0, errAnswer},
		"too short":       {header(4, unix.NLMSG_ERROR), 0, errAnswer},
		"without number":  {header(16, unix.NLMSG_ERROR), 0, errAnswer},
	} {
		acks, err := answers(c.in)
		if acks != c.acks || !errors.Is(err, c.err) {
			t.Errorf("%s: %d, %v", name, acks, err)
		}
	}
}

func FuzzAnswers(f *testing.F) {
	f.Add(encode([]message{{kind: unix.NLMSG_ERROR, body: []byte{0, 0, 0, 0}}}))
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = answers(b) })
}

// lacking is a way that no kernel has.
func lacking(name string) way {
	w := transparent()
	w.name, w.modules = name, "the module "+name
	w.leads = func(*family, uint16) [][]byte { return [][]byte{expression(name)} }
	return w
}

// Where the kernel lacks one way, the other one is taken; where it lacks both,
// the error says which modules are missing. This test is its own child, in
// namespaces where it may try.
func TestWays(t *testing.T) {
	if os.Getenv("NETNS_WAYS") != "" {
		fmt.Println(tried())
		return
	}
	c := exec.Command("/proc/self/exe", "-test.run=^TestWays$", "-test.v")
	c.Env = []string{"NETNS_WAYS=1"}
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
	}
	out, err := c.CombinedOutput()
	const want = "a network under a policy needs the kernel's modules the module a_way, or the module b_way: " +
		"a_way: message 4: no such file or directory\nb_way: message 4: no such file or directory " +
		"(modprobe -a nf_tables nft_tproxy; a kernel without them is built with CONFIG_NFT_TPROXY)\nredirect\n"
	if err != nil || !bytes.Contains(out, []byte(want)) {
		t.Errorf("%v\n%s", err, out)
	}
}

func tried() string {
	list := families()
	_, err := ruled([]way{lacking("a_way"), lacking("b_way")}, list[:])
	w, none := ruled([]way{lacking("a_way"), redirected()}, list[:])
	return errors.Join(err, none).Error() + "\n" + w.name
}
