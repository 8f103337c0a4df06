// The order form: fills in what the address asks for, and shows the envelope instead of sending it.
function openLetter(form, slip) {
  for (const [name, value] of new URLSearchParams(location.search)) {
    const field = form.elements[name];
    if (field !== undefined) field.value = value;
  }
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const v = {
      type: 'email.requested',
      data: { table: 'letters', ...Object.fromEntries(new FormData(form)) },
    };
    slip.querySelector('pre').textContent = JSON.stringify({ a: 'svc1.event.insert', v }, null, 2);
    slip.hidden = false;
    slip.focus();
  });
}
