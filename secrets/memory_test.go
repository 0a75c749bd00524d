package secrets

import (
	"context"
)

// memory is a provider for tests of what stands above one.
type memory map[ID]string

func (m memory) Get(_ context.Context, id ID) ([]byte, error) {
	v, ok := m[id]
	if !ok {
		return nil, notThere(id)
	}
	return []byte(v), nil
}

func (m memory) Put(_ context.Context, id ID, value []byte) error {
	m[id] = string(value)
	return nil
}

func (m memory) Delete(_ context.Context, id ID) error {
	if _, ok := m[id]; !ok {
		return notThere(id)
	}
	delete(m, id)
	return nil
}

func (m memory) List(context.Context) ([]ID, error) {
	var ids []ID
	for id := range m {
		ids = append(ids, id)
	}
	return sortIDs(ids), nil
}
