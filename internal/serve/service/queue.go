package service

// A rota is keys in turn: who was served goes to the end.
type rota[T any] struct {
	order []string
	of    map[string]T
}

// at returns what k has; made is called if it has nothing, and k comes last.
func (r *rota[T]) at(k string, made func() T) T {
	v, there := r.of[k]
	if !there {
		if r.of == nil {
			r.of = map[string]T{}
		}
		v = made()
		r.of[k] = v
		r.order = append(r.order, k)
	}
	return v
}

// served moves the key at a place to the end or, if it has nothing more, takes it
// out.
func (r *rota[T]) served(at int, more bool) {
	k := r.order[at]
	r.order = append(r.order[:at:at], r.order[at+1:]...)
	if more {
		r.order = append(r.order, k)
		return
	}
	delete(r.of, k)
}

// drop takes out a key that has nothing more.
func (r *rota[T]) drop(k string) {
	delete(r.of, k)
	for i, other := range r.order {
		if other == k {
			r.order = append(r.order[:i:i], r.order[i+1:]...)
			return
		}
	}
}

// A queue is the runs that wait: first come, first served for each caller, and
// tenants, and within a tenant callers, one after the other. So who asks much
// delays itself and not who asks little.
type queue struct {
	tenants rota[*rota[*[]*Run]]
	n       int
	bytes   int64 // of the requests that wait
}

func newQueue() *queue { return &queue{} }

func (q *queue) len() int { return q.n }

// of is how many runs of r's caller wait.
func (q *queue) of(tenant, caller string) int {
	if t := q.tenants.of[tenant]; t != nil {
		if list := t.of[caller]; list != nil {
			return len(*list)
		}
	}
	return 0
}

func (q *queue) push(r *Run) {
	t := q.tenants.at(r.tenant, func() *rota[*[]*Run] { return &rota[*[]*Run]{} })
	list := t.at(r.caller.who(), func() *[]*Run { return new([]*Run) })
	*list = append(*list, r)
	q.n++
	q.bytes += r.size
}

// pop takes the next run of a caller who is not to wait; nil: there is none.
func (q *queue) pop(waits func(*Caller) bool) *Run {
	for i, tenant := range q.tenants.order {
		t := q.tenants.of[tenant]
		for j, caller := range t.order {
			list := t.of[caller]
			r := (*list)[0]
			if waits(r.caller) {
				continue
			}
			(*list)[0] = nil
			*list = (*list)[1:]
			t.served(j, len(*list) > 0)
			q.tenants.served(i, len(t.order) > 0)
			q.n--
			q.bytes -= r.size
			return r
		}
	}
	return nil
}

// remove takes r out; false: it does not wait.
func (q *queue) remove(r *Run) bool {
	t := q.tenants.of[r.tenant]
	if t == nil || t.of[r.caller.who()] == nil {
		return false
	}
	list := t.of[r.caller.who()]
	for i, other := range *list {
		if other != r {
			continue
		}
		*list = append((*list)[:i:i], (*list)[i+1:]...)
		if len(*list) == 0 {
			t.drop(r.caller.who())
		}
		if len(t.order) == 0 {
			q.tenants.drop(r.tenant)
		}
		q.n--
		q.bytes -= r.size
		return true
	}
	return false
}
