package policy

import (
	"path"

	"runloop.dev/rlp/caps"
)

// DefaultTenant is the tenant whose artifacts lie directly in the home.
const DefaultTenant = "default"

// Protected is the layer of every launch that no file can lift: nothing of the
// home but the tenant's artifacts, and nothing of /proc, /sys and /dev, however
// broad a grant is. Home is absolute; other names of the same folder, where
// links lead to it, follow the tenant.
func Protected(home, tenant string, names ...string) *caps.Layer {
	l := &caps.Layer{Name: caps.ProtectedLayer}
	all := caps.AllModes(caps.FS)
	deny := func(p string) {
		l.Deny = append(l.Deny, caps.Entry{Grant: caps.Grant{Family: caps.FS, Modes: all, Scope: path.Clean(p)}})
	}
	for _, p := range []string{"/proc", "/sys", "/dev"} {
		deny(p)
	}
	for _, h := range append([]string{home}, names...) {
		deny(h)
		spare := path.Join(h, "artifacts")
		if tenant != "" && tenant != DefaultTenant {
			spare = path.Join(h, "tenants", tenant, "artifacts")
		}
		l.Spare = append(l.Spare, caps.Entry{Grant: caps.Grant{Family: caps.FS, Modes: all, Scope: spare}})
	}
	return l
}
