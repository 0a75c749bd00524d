package values

import "time"

// Options are those of a store's values.
type Options struct {
	Tenant      string
	Domains     []string
	Mask        func(domain string, value []byte) []byte
	MaskVersion string
	Now         func() time.Time
}
