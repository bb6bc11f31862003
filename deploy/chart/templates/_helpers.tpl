{{/* The name of what is made. */}}
{{- define "emberscope.name" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains "emberscope" .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-emberscope" .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* What pods are chosen by. In: the chart's context and the component. */}}
{{- define "emberscope.selector" -}}
app.kubernetes.io/name: emberscope
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Labels of all objects. In: as above. */}}
{{- define "emberscope.labels" -}}
{{ include "emberscope.selector" . }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end -}}

{{- define "emberscope.image" -}}
{{- if .Values.image.tag -}}
{{ .Values.image.repository }}:{{ .Values.image.tag }}
{{- else -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- end -}}
{{- end -}}

{{- define "emberscope.account" -}}
{{- .Values.serviceAccount.name | default (include "emberscope.name" .) -}}
{{- end -}}

{{- define "emberscope.tokens" -}}
{{- .Values.token.secret | default (printf "%s-token" (include "emberscope.name" .)) -}}
{{- end -}}

{{/* The settings as the daemon reads them: TOML, whose strings are written as JSON's. A number of YAML is a float here. */}}
{{- define "emberscope.settings" -}}
{{- range $name, $value := .Values.settings }}
{{- if kindIs "float64" $value }}
{{ $name }} = {{ if eq (floor $value) $value }}{{ int64 $value }}{{ else }}{{ $value }}{{ end }}
{{- else }}
{{ $name }} = {{ toJson $value }}
{{- end }}
{{- end }}
{{- with .Values.archive.url }}
archive = {{ toJson . }}
{{- end }}
{{- end -}}

{{/* Not empty: the settings name tracepoints, whose numbers the kernel tells in tracefs. */}}
{{- define "emberscope.tracepoints" -}}
{{- $events := get (.Values.settings | default dict) "events" | toString -}}
{{- if or (contains ":" $events) (contains "block-io" $events) -}}true{{- end -}}
{{- end -}}

{{/* Arguments of the daemon and of serve alike: who may ask. */}}
{{- define "emberscope.arguments" -}}
- --listen=0.0.0.0:4099
- --token-file=/etc/emberscope-token/{{ .Values.token.key }}
{{- with .Values.token.readKey }}
- --read-token-file=/etc/emberscope-token/{{ . }}
{{- end }}
{{- with .Values.token.metricsKey }}
- --metrics-token-file=/etc/emberscope-token/{{ . }}
{{- end }}
{{- if .Values.tls.secret }}
- --tls-cert=/etc/emberscope-tls/tls.crt
- --tls-key=/etc/emberscope-tls/tls.key
{{- end }}
# Only /healthz, /readyz and /metrics: the first two for the kubelet, which has no token.
- --health-listen=0.0.0.0:4098
{{- end -}}

{{/* Credentials of the archive. */}}
{{- define "emberscope.credentials" -}}
{{- if .Values.archive.secret }}
envFrom:
  - secretRef:
      name: {{ .Values.archive.secret | quote }}
{{- end }}
{{- end -}}

{{- define "emberscope.ports" -}}
- name: http
  containerPort: 4099
  protocol: TCP
- name: health
  containerPort: 4098
  protocol: TCP
{{- end -}}

{{- define "emberscope.probes" -}}
startupProbe:
  httpGet:
    path: /healthz
    port: health
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet:
    path: /healthz
    port: health
  periodSeconds: 20
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet:
    path: /readyz
    port: health
  periodSeconds: 10
  timeoutSeconds: 5
{{- end -}}

{{- define "emberscope.mounts" -}}
- name: token
  mountPath: /etc/emberscope-token
  readOnly: true
{{- if .Values.tls.secret }}
- name: tls
  mountPath: /etc/emberscope-tls
  readOnly: true
{{- end }}
{{- end -}}

{{/* Volumes of secrets. In: the chart's context and the files' mode. */}}
{{- define "emberscope.secrets" -}}
- name: token
  secret:
    secretName: {{ include "emberscope.tokens" .root | quote }}
    # {{ .octal }} in octal, which YAML readers disagree on: the daemon refuses a token that others may read.
    defaultMode: {{ .mode }}
{{- with .root.Values.tls.secret }}
- name: tls
  secret:
    secretName: {{ . | quote }}
    defaultMode: {{ $.mode }}
{{- end }}
{{- end -}}
