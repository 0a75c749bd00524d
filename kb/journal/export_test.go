package journal

// LimitGroup makes the group files of g begin anew at so many bytes.
func LimitGroup(g *Group, limit int64) { g.limit = limit }

// SyncTogether syncs journals as if they had come at once.
func SyncTogether(g *Group, js ...*Journal) error {
	g.commit(js)
	for _, j := range js {
		if j.seat.err != nil {
			return j.seat.err
		}
		j.synced = j.off
	}
	return nil
}
