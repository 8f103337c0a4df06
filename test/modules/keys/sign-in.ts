/** A session that the server has made. */
interface SignedIn {
  readonly id: string;
  readonly token: string;
  /** The pair of the cookie. */
  readonly cookie: string;
  readonly setCookie: string;
  /** The options of a call as this session. */
  readonly as: { readonly apikey: string; readonly headers: { readonly cookie: string } };
}

/** Signs in at a server with an API key. */
export async function signIn({ url }: { readonly url: string }, apikey: string): Promise<SignedIn> {
  const response = await fetch(`${url}/svc1/session/insert`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ v: { apikey } }),
  });
  const { data } = (await response.json()) as { data: { id: string; token: string } };
  const setCookie = response.headers.get('set-cookie') ?? '';
  const cookie = setCookie.split(';')[0] ?? '';
  return { ...data, setCookie, cookie, as: { apikey: data.token, headers: { cookie } } };
}
