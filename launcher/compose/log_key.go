package compose

import (
	"sync"

	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/record/evidence"
)

// A logKey is the key of a tenant's log, made at its first use: whoever reads
// the log and signs nothing needs none.
type logKey struct {
	home home.Home
	mu   sync.Mutex
	key  *evidence.Key
}

// get reads the key, making one when there is none.
func (k *logKey) get() (*evidence.Key, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.key != nil {
		return k.key, nil
	}
	key, err := evidence.MakeKey(k.home.Root(), k.home.Tenant())
	if err != nil {
		return nil, err
	}
	k.key = key
	return key, nil
}

func (k *logKey) seal(size uint64, root [32]byte) ([]byte, error) {
	key, err := k.get()
	if err != nil {
		return nil, err
	}
	return key.Seal(size, root)
}

func (k *logKey) sealMark(size uint64, root [32]byte, lines []string) ([]byte, error) {
	key, err := k.get()
	if err != nil {
		return nil, err
	}
	return key.SealMark(size, root, lines)
}
