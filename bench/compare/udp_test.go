package main

import (
	"strings"
	"testing"
)

func TestReadFlood(t *testing.T) {
	const out = `{"Sent":100000,"Errors":1,"Seconds":2}` + "\n"
	f, err := readFlood([]byte(out), []byte("ready\n"+`{"Received":90000,"Bytes":5760000,"Lost":10000,"Reordered":3,"Seconds":2.5}`+"\n"))
	if err != nil || f.offered() != 50 || f.kilopacks() != 36 || f.megapacks() != 0.09 || f.loss() < 0.0999 || f.loss() > 0.1001 {
		t.Errorf("%+v: %v kpps, loss %v, %v", f, f.kilopacks(), f.loss(), err)
	}
	if f.sent.Errors != 1 || f.received.Lost != 10000 || f.received.Reordered != 3 {
		t.Errorf("%+v", f)
	}
	for in, want := range map[string]string{
		"ready\n" + `{"Received":0,"Seconds":0}`: "nothing was received",
		"ready\nno JSON at all":                  "no JSON at all",
		"":                                       "sink",
	} {
		if _, err := readFlood([]byte(out), []byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", in, err)
		}
	}
	if _, err := readFlood([]byte("oops"), []byte("ready\n{}")); err == nil || !strings.Contains(err.Error(), "blast") {
		t.Error(err)
	}
}

// More received than sent, as duplicates are, is no loss.
func TestLoss(t *testing.T) {
	f := flood{sent: sent{Sent: 10}, received: received{Received: 11}}
	if f.loss() != 0 {
		t.Error(f.loss())
	}
	if f := (flood{}); f.loss() != 1 {
		t.Error(f.loss())
	}
}
