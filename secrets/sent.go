package secrets

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"runloop.dev/rlp/internal/base/home"
)

// A sentList remembers, for all runs of a tenant, which secrets were sent to which
// hosts: what a host was sent it can say to every run that reaches it. It holds
// ids and hosts, a line for each pair, and no values. It serves one run.
type sentList struct {
	dir  string
	info os.FileInfo         // of the file as it was read
	ids  map[string][]string // by host
}

const (
	maxSentList  = 1 << 20 // bytes
	maxSentHosts = 64      // of one secret; one that was sent to more is anyHost's
	anyHost      = "*"
)

func (l *sentList) path() string { return filepath.Join(l.dir, "sent") }

// place is one name for the host and port of each server that has many: all of
// this machine's are one. Which other names lead to one server is not known.
func place(host string) string {
	at := strings.LastIndexByte(host, ':')
	if at == -1 {
		return host
	}
	name, port := host[:at], host[at+1:]
	addr, _ := netip.ParseAddr(strings.Trim(name, "[]")) // the zero Addr is none of this machine's
	if strings.HasSuffix(name, ".localhost") || addr.Unmap().IsLoopback() {
		return "localhost:" + port
	}
	return host
}

// at are the secrets that were sent to host.
func (l *sentList) at(host string) ([]string, error) {
	if err := l.read(); err != nil {
		return nil, fmt.Errorf("reading which secrets were sent to %s: %w", host, err)
	}
	host = place(host)
	return slices.Concat(l.ids[host], l.ids[anyHost]), nil
}

// read reads the file if it is not the one that was read: another run can have
// sent something since.
func (l *sentList) read() error {
	info, err := os.Lstat(l.path())
	if errors.Is(err, fs.ErrNotExist) {
		l.info, l.ids = nil, nil
		return nil
	}
	if err != nil {
		return err
	}
	if os.SameFile(info, l.info) && info.ModTime().Equal(l.info.ModTime()) && info.Size() == l.info.Size() {
		return nil
	}
	data, err := home.ReadPrivate(l.path(), maxSentList)
	if err != nil {
		return err
	}
	l.info, l.ids = info, map[string][]string{}
	for line := range strings.Lines(string(data)) {
		id, host, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "@")
		if _, err := ParseID(id); err != nil || !ok {
			l.info = nil
			return fmt.Errorf("%s has a line that is no secret and host; remove the file, and what was sent before is not "+
				"looked for in other runs", l.path())
		}
		host = place(host)
		l.ids[host] = append(l.ids[host], id)
	}
	return nil
}

// add notes that the secret id is about to be sent to host.
func (l *sentList) add(id, host string) error {
	host = place(host)
	if ids, _ := l.at(host); slices.Contains(ids, id) {
		return nil
	}
	err := privateDir(l.dir, true)
	if err == nil {
		err = locked(l.dir, func() error { return l.write(id, host) })
	}
	if err != nil {
		return fmt.Errorf("noting that %s is sent to %s: %w", id, host, err)
	}
	return nil
}

// write adds the pair to the file. A secret of too many hosts becomes one of any.
func (l *sentList) write(id, host string) error {
	if err := l.read(); err != nil {
		return err
	}
	var all []string
	hosts := 0
	for h, ids := range l.ids {
		for _, other := range ids {
			if other == id {
				hosts++
			}
			all = append(all, other+"@"+h)
		}
	}
	if hosts >= maxSentHosts {
		host = anyHost
		all = slices.DeleteFunc(all, func(pair string) bool { return strings.HasPrefix(pair, id+"@") })
	}
	all = append(all, id+"@"+host)
	slices.Sort(all)
	var b bytes.Buffer
	for _, pair := range slices.Compact(all) {
		b.WriteString(pair + "\n")
	}
	return home.WritePrivate(l.path(), b.Bytes())
}
