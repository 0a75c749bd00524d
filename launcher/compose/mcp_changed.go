package compose

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/effect/mcpclient"
	"runloop.dev/rlp/launcher/ask"
)

// ChangedServers are those of a tenant, by name. One whose files are damaged is not
// among them: the launch that needs it says so.
func ChangedServers(h home.Home) ([]ask.ChangedServer, error) {
	entries, err := os.ReadDir(h.Pins())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var list []ask.ChangedServer
	for _, e := range entries {
		name, is := strings.CutSuffix(e.Name(), SeenSuffix)
		if !is || strings.HasPrefix(name, ".") {
			continue
		}
		known, err := ReadPin(PinPath(h, name), name)
		if err != nil || known == nil {
			continue
		}
		seen, err := ReadPin(SeenPath(h, name), name)
		if err != nil || seen == nil || seen.Digest == known.Digest {
			continue
		}
		c := ask.ChangedServer{Server: name, At: seen.At}
		for _, change := range mcpclient.Diff(known.Tools, seen.Tools) {
			c.Tools = append(c.Tools, change.Tool)
		}
		list = append(list, c)
	}
	return list, nil
}
