package check

import (
	"bytes"
	"strings"
	"sync"
)

// A Log keeps what is written to it, to be read meanwhile.
type Log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

// String returns all of it.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// Count returns how often it has a text.
func (l *Log) Count(text string) int { return strings.Count(l.String(), text) }
