// The finishes of a lamp and what each costs: choosing one paints the lamp on the page.
const paints = {
  Brass: ['light-dark(#8a6a2f, #a88445)', '#d9a441'],
  Slate: ['light-dark(#38474f, #64767f)', '#7d929c'],
  Samphire: ['light-dark(#2f5a45, #4f8064)', '#6fa37c'],
  'Buoy red': ['light-dark(#5a2a22, #8f4b3e)', '#cf4f36'],
};

function offerFinishes(prices) {
  const stage = document.querySelector('.stage');
  const choices = document.querySelector('.choices');
  for (const [at, name] of Object.keys(prices).entries()) {
    const [metal, shade] = paints[name];
    const choice = document.createElement('label');
    choice.className = 'choice';
    const input = Object.assign(document.createElement('input'), {
      type: 'radio',
      name: 'finish',
      value: name,
      checked: at === 0,
    });
    const dab = document.createElement('i');
    dab.style.background = shade;
    input.addEventListener('change', paint);
    choice.append(input, dab, name);
    choices.append(choice);
    if (at === 0) paint();

    function paint() {
      stage.style.setProperty('--metal', metal);
      stage.style.setProperty('--shade', shade);
      document.querySelector('.price output').textContent = `€ ${prices[name]}`;
      const order = document.querySelector('[data-order]');
      const address = new URL(order.href);
      address.searchParams.set('finish', name);
      order.href = address.pathname + address.search;
    }
  }
}
