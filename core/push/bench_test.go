package push

import "testing"

// BenchmarkQueue is a push to 1000 connections, bounded: all are enqueued, each has its turn and
// says what it sends.
func BenchmarkQueue(b *testing.B) {
	q := NewQueue(Limits{Bytes: 16 << 20, Composing: 4})
	b.ReportAllocs()
	for b.Loop() {
		for id := range uint64(1000) {
			q.Enqueue(id, Other)
		}
		turns := 0
		for id, ok := q.Next(); ok; id, ok = q.Next() {
			q.Sending(id, 1<<20)
			q.Sending(id, -1<<20)
			q.Done(id)
			turns++
		}
		if turns != 1000 {
			b.Fatal(turns)
		}
	}
}
