// A door to an S3 server for clients of Google Cloud Storage, whose XML interface is S3's but for who asks: a token of
// the machine's account in place of a signature.
//
// In: the port to listen on and the S3 server's; ROOT_ACCESS_KEY and ROOT_SECRET_KEY of that one. It hands out a token
// as Google's metadata server does, refuses who has another, and signs what goes on. What S3 has not (generations,
// holds, composing) it has not.
package main

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/smithy-go/encoding/httpbinding"
)

const token = "a-token"

func main() {
	port, server := os.Args[1], &url.URL{Scheme: "http", Host: "127.0.0.1:" + os.Args[2]}
	who := aws.Credentials{AccessKeyID: os.Getenv("ROOT_ACCESS_KEY"), SecretAccessKey: os.Getenv("ROOT_SECRET_KEY")}
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	proxy := &httputil.ReverseProxy{
		Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 32},
		Rewrite: func(r *httputil.ProxyRequest) {
			// To Google %2F in a name is a slash; S3 signs it as one.
			r.Out.URL.RawPath = httpbinding.EscapePath(r.Out.URL.Path, false)
			r.SetURL(server)
			r.Out.Header.Del("Authorization")
			const payload = "UNSIGNED-PAYLOAD"
			r.Out.Header.Set("X-Amz-Content-Sha256", payload)
			if err := signer.SignHTTP(r.Out.Context(), who, r.Out, payload, "s3", "us-east-1", time.Now()); err != nil {
				log.Print(err)
			}
		},
	}
	http.HandleFunc("GET /computeMetadata/v1/instance/service-accounts/default/token",
		func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Metadata-Flavor") != "Google" {
				http.Error(w, "no Metadata-Flavor", http.StatusForbidden)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"access_token":%q,"expires_in":3599,"token_type":"Bearer"}`, token)
		})
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			w.Header().Set("Content-Type", "application/xml; charset=UTF-8")
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, "<?xml version='1.0' encoding='UTF-8'?><Error><Code>AuthenticationRequired</Code></Error>")
			return
		}
		proxy.ServeHTTP(w, r)
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+port, nil))
}
