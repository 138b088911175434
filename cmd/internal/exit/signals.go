package exit

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Signals returns a context that the first interrupt or termination ends; a second one ends the process at once. stop
// gives the signals back.
func Signals(w io.Writer) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	caught := make(chan os.Signal, 2)
	signal.Notify(caught, os.Interrupt, syscall.SIGTERM)
	go func() {
		if _, open := <-caught; !open {
			return
		}
		_, _ = io.WriteString(w, "\nstopping; interrupt again to end at once\n")
		cancel()
		if _, open := <-caught; open {
			os.Exit(Interrupted)
		}
	}()
	return ctx, func() {
		signal.Stop(caught)
		close(caught)
		cancel()
	}
}
