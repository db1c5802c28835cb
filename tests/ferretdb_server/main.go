// FerretDB speaks MongoDB's protocol and keeps documents in SQLite: ferretdb ADDRESS FOLDER.
package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/FerretDB/FerretDB/ferretdb"
)

func main() {
	server, err := ferretdb.New(&ferretdb.Config{
		Listener:  ferretdb.ListenerConfig{TCP: os.Args[1]},
		Logger:    slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Handler:   "sqlite",
		SQLiteURL: "file:" + os.Args[2] + "/",
	})
	if err != nil {
		panic(err)
	}
	if err := server.Run(context.Background()); err != nil {
		panic(err)
	}
}
