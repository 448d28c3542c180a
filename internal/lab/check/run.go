package check

import (
	"context"
	"sync"
	"testing"
)

// Run runs functions until stop is called or the test ends, which fails if one of them returns an error.
func Run(t testing.TB, functions ...func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, f := range functions {
		running.Go(func() {
			if err := f(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(stop)
	return stop
}
