package policy

import "runloop.dev/rlp/caps"

// A Profile is a named document that narrows, one of the home's or a built-in
// one.
type Profile struct {
	About
	Layer *caps.Layer

	restricts bool
}

// ParseProfile reads a profile. The profile is nil if a finding is an error.
func ParseProfile(name, file string, data []byte, opt Options) (*Profile, []Finding) {
	r, ok := readLayer(file, data, KindProfile, opt)
	if !ok {
		return nil, r.findings
	}
	p := &Profile{About: r.about, Layer: r.narrowing("profile:" + name), restricts: r.restricts}
	p.Name = name
	return p, r.findings
}
